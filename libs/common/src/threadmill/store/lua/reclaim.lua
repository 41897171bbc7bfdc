-- reclaim: take expired leases from workers that died; forget workers that left nothing behind.
-- KEYS 1 leases  2 leased  3 requests  4 stats  5 dead  6 dead index  7 jobs root  8 workers  9 reports
--      10 tasks  11 express  12 delayed
-- ARGV stage, group, most deliveries allowed, ms after which a silent worker is forgotten, most leases to take
-- Returns {queued again, parked, workers forgotten}.
-- Twice: the second call finds what the first left.
local leases, leased, requests, stats, dead, index = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local jobs_root, workers, reports, streams, delayed = KEYS[7], KEYS[8], KEYS[9], { KEYS[10], KEYS[11] }, KEYS[12]
local stage, group, allowed = ARGV[1], ARGV[2], tonumber(ARGV[3])
local silence, limit, now = tonumber(ARGV[4]), tonumber(ARGV[5]), now_ms()
-- A page whose worker died twice may be the one that kills. Such come back one after the other, so far apart (ms), so
-- that the one takes no others with it again and again.
local SUSPECT_MS = 250
local queued, parked, forgotten = 0, 0, 0
although_full(leased)
for _, lease in ipairs(redis.call("ZRANGEBYSCORE", leases, "-inf", now, "LIMIT", 0, limit)) do
  local member = redis.call("HGET", leased, lease)
  -- An expiry without its request is nobody's work (keys edited by hand): it goes, and stops nothing.
  if member then
    local job, run, priority, deliveries, failures, history, payload = parse(string.sub(member, 9))
    deliveries = tonumber(deliveries) + 1
    local record = compose(job, run, priority, deliveries, failures, history, payload)
    if deliveries >= allowed then
      bury(dead, index, stats, now, "crashed", "request", "its worker died " .. deliveries .. " times", record)
      count_job(job, stage, "dead", 1)
      parked = parked + 1
    elseif deliveries > 1 then
      redis.call("ZADD", delayed, now + (queued + 1) * SUSPECT_MS, string.sub(member, 1, 8) .. record)
      queued = queued + 1
    else
      place(requests, jobs_root, job, string.sub(member, 1, 8) .. record, priority, score)
      queued = queued + 1
    end
  end
  redis.call("HDEL", leased, lease)
  redis.call("ZREM", leases, lease)
end
count(stats, "reclaimed", queued + parked)

for _, worker in ipairs(redis.call("ZRANGEBYSCORE", workers, "-inf", now - silence, "LIMIT", 0, 10)) do
  local pending = 0
  for _, stream in ipairs(streams) do
    local held = redis.pcall("XPENDING", stream, group, "-", "+", 1, worker)
    if not held.err then pending = pending + #held end
  end
  -- Dropping a consumer drops what is pending for it: only one that has nothing pending may go.
  if pending == 0 then
    for _, stream in ipairs(streams) do redis.pcall("XGROUP", "DELCONSUMER", stream, group, worker) end
    redis.call("ZREM", workers, worker)
    redis.call("HDEL", reports, worker, worker .. ":lease", worker .. ":since")
    forgotten = forgotten + 1
  end
end
flush(jobs_root, now)
return { queued, parked, forgotten }
