-- park: pages that no retry will help become dead letters.
-- KEYS 1 leases  2 leased  3 stats  4 dead  5 dead index  6 jobs root
-- ARGV stage, then per page: lease id, reason, error
-- Returns per page 1, or 0 if fenced.
-- Twice: the leases are gone, so every page is fenced.
local leases, leased, stats, dead, index, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stage, now = ARGV[1], now_ms()
local answers = {}
although_full(leased)
for i = 2, #ARGV, 3 do
  local lease, reason, err = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local member = redis.call("HGET", leased, lease)
  if member then
    local record = string.sub(member, 9)
    local job = parse(record)
    bury(dead, index, stats, now, reason, "request", err, record)
    count_job(job, stage, "dead", 1)
    redis.call("HDEL", leased, lease)
    redis.call("ZREM", leases, lease)
    answers[#answers + 1] = 1
  else
    count(stats, "fenced", 1)
    answers[#answers + 1] = 0
  end
end
flush(jobs_root, now)
return answers
