-- books: a stage's books at one instant.
-- KEYS 1 tasks  2 express  3 requests  4 leases  5 delayed  6 dead  7 stats  8 workers  9 control
-- ARGV ms after which a silent worker does not count
-- Returns {tasks, requests, leased, delayed, dead, accepted, done, filtered, workers, paused, draining, held}.
-- Twice: only reads.
local tasks = redis.call("XLEN", KEYS[1]) + redis.call("XLEN", KEYS[2])
local rule = redis.call("HMGET", KEYS[9], "paused", "draining", "held")
local stats = redis.call("HMGET", KEYS[7], "accepted", "done", "filtered", "streamed")
-- Tasks pushed from outside, past submit, are accepted by being in the stream; admit moves them to the counter.
local outside = math.max(0, tasks - tonumber(stats[4] or 0))
return {
  tasks,
  redis.call("ZCARD", KEYS[3]),
  redis.call("ZCARD", KEYS[4]),
  redis.call("ZCARD", KEYS[5]),
  redis.call("HLEN", KEYS[6]),
  tonumber(stats[1] or 0) + outside,
  tonumber(stats[2] or 0),
  tonumber(stats[3] or 0),
  redis.call("ZCOUNT", KEYS[8], now_ms() - tonumber(ARGV[1]), "+inf"),
  rule[1] == "1" and 1 or 0,
  rule[2] == "1" and 1 or 0,
  rule[3] or "",
}
