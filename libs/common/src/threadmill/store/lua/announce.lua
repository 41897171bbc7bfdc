-- announce: more of a job is on its way, so that it is not taken for finished between two of its submissions.
-- KEYS 1 jobs root
-- ARGV job, for how long at most (ms; 0 = all has been said), seconds to keep its books once it is finished ("" = as ever)
-- Returns 1.
-- Twice: the second call moves the time by the time between the two; ending it twice ends it once.
local jobs_root, job, wait, keep, now = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], now_ms()
local key = jobs_root .. job
if keep ~= "" then redis.call("HSET", key, "keep", keep) end
if wait > 0 then
  redis.call("HSET", key, "hold", string.format("%.0f", now + wait))
  index_job(jobs_root, job, now)
else
  redis.call("HDEL", key, "hold")
  finish_job(jobs_root, job, now)
end
return 1
