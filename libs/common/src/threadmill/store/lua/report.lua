-- report: a worker lives, and this is what it counted since its last report.
-- KEYS 1 workers  2 reports  3 stats
-- ARGV worker id, number of the report, then pairs: counter, increment
-- Returns 1 if the counts were added.
-- Twice: a report whose number was seen is not added again.
although_full(KEYS[2])
local now = now_ms()
if redis.call("ZADD", KEYS[1], now, ARGV[1]) == 1 then redis.call("HSET", KEYS[2], ARGV[1] .. ":since", now) end
if tonumber(redis.call("HGET", KEYS[2], ARGV[1]) or -1) >= tonumber(ARGV[2]) then return 0 end
redis.call("HSET", KEYS[2], ARGV[1], ARGV[2])
for i = 3, #ARGV, 2 do redis.call("HINCRBY", KEYS[3], ARGV[i], ARGV[i + 1]) end
return 1
