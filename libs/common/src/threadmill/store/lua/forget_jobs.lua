-- forget_jobs: the index of jobs lets go of those whose books are gone.
-- KEYS 1 jobs (the index)  2 jobs root
-- ARGV jobs
-- Returns how many went.
-- Twice: they have gone.
local gone = 0
for _, job in ipairs(ARGV) do
  if redis.call("EXISTS", KEYS[2] .. job) == 0 then gone = gone + redis.call("ZREM", KEYS[1], job) end
end
return gone
