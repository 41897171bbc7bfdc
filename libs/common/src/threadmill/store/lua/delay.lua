-- delay: failed pages wait and are tried again, by any worker; one that failed too often is parked.
-- KEYS 1 leases  2 leased  3 delayed  4 stats  5 dead  6 dead index  7 site  8 jobs root
-- ARGV stage, failures at which a page is parked, then per page: lease id, delay in ms, pause of the whole site in ms,
--      1 if it counts as a failure, reason, error
-- Returns per page 1 (delayed), 2 (parked) or 0 (fenced).
-- Twice: the leases are gone, so every page is fenced.
local leases, leased, delayed, stats = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, index, site, jobs_root = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local stage, allowed, now = ARGV[1], tonumber(ARGV[2]), now_ms()
local answers = {}
although_full(leased)
for i = 3, #ARGV, 6 do
  local lease, wait, pause, counts, reason, err = unpack(ARGV, i, i + 5)
  local member = redis.call("HGET", leased, lease)
  if member then
    local job, run, priority, deliveries, failures, history, payload = parse(string.sub(member, 9))
    failures = tonumber(failures) + tonumber(counts)
    local record = compose(job, run, priority, deliveries, failures, history, payload)
    if counts == "1" and failures >= allowed then
      bury(dead, index, stats, now, reason, "request", err, record)
      count_job(job, stage, "dead", 1)
      answers[#answers + 1] = 2
    else
      redis.call("ZADD", delayed, now + tonumber(wait), string.sub(member, 1, 8) .. record)
      count(stats, "retried", 1)
      answers[#answers + 1] = 1
    end
    redis.call("HDEL", leased, lease)
    redis.call("ZREM", leases, lease)
    if tonumber(pause) > 0 then
      local until_ms = now + tonumber(pause)
      if until_ms > tonumber(redis.call("HGET", site, "paused_until") or 0) then
        redis.call("HSET", site, "paused_until", until_ms)
      end
    end
  else
    count(stats, "fenced", 1)
    answers[#answers + 1] = 0
  end
end
flush(jobs_root, now)
return answers
