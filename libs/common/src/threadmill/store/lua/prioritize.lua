-- prioritize: from now on a job's requests have this priority besides their own; some of those that wait get their new
-- place. Those that come from now on are placed so anyway.
-- KEYS 1 requests  2 jobs root
-- ARGV job, priority, cursor (0 at first), how many requests to look at (about)
-- Returns {next cursor (0 = all were looked at), how many it looked at, how many of them are the job's; -1 if the job is
-- not known here}.
-- Twice: what has its place keeps it. Broken off: what was not looked at keeps its old place until somebody goes on.
local requests, jobs_root, job, priority = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local key = jobs_root .. job
if redis.call("EXISTS", key) == 0 then return { "0", 0, -1 } end
if tonumber(priority) == 0 then
  redis.call("HDEL", key, "priority")
else
  redis.call("HSET", key, "priority", priority)
end
local found = 0
local seen = redis.call("ZSCAN", requests, ARGV[3], "COUNT", ARGV[4])
for i = 1, #seen[2], 2 do
  local member = seen[2][i]
  local whose, _, own = parse(string.sub(member, 9))
  if whose == job then
    place(requests, jobs_root, job, member, own, score)
    found = found + 1
  end
end
return { seen[1], #seen[2] / 2, found }
