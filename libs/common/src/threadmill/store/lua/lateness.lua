-- lateness: how the schedule of a lane stands.
-- KEYS 1 schedule  2 boards  3 schedule stats  4 dispatchers
-- ARGV ms after which a silent dispatcher does not count
-- Returns {boards, of them on the schedule, due, ms that the one waiting longest is late, dispatchers, dispatched, late_ms,
--         skipped_busy, skipped_full}.
-- Twice: only reads.
local now = now_ms()
local first = redis.call("ZRANGE", KEYS[1], 0, 0, "WITHSCORES")[2]
local answer = {
  redis.call("HLEN", KEYS[2]),
  redis.call("ZCARD", KEYS[1]),
  redis.call("ZCOUNT", KEYS[1], "-inf", now),
  first and math.max(0, now - tonumber(first)) or 0,
  redis.call("ZCOUNT", KEYS[4], now - tonumber(ARGV[1]), "+inf"),
}
local names = { "dispatched", "late_ms", "skipped_busy", "skipped_full" }
for at, value in ipairs(redis.call("HMGET", KEYS[3], unpack(names))) do answer[5 + at] = tonumber(value or 0) end
return answer
