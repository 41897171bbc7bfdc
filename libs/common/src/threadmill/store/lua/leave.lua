-- leave: a worker that stopped in good order takes its records with it, unless entries are still pending for it.
-- KEYS 1 workers  2 reports  3 tasks  4 express
-- ARGV worker id, group
-- Returns 1 if nothing of it is left; else 0, and reclaim will see to it.
-- Twice: there is nothing left to remove.
for _, stream in ipairs({ KEYS[3], KEYS[4] }) do
  local held = redis.pcall("XPENDING", stream, ARGV[2], "-", "+", 1, ARGV[1])
  if not held.err and #held > 0 then return 0 end
end
redis.pcall("XGROUP", "DELCONSUMER", KEYS[3], ARGV[2], ARGV[1])
redis.pcall("XGROUP", "DELCONSUMER", KEYS[4], ARGV[2], ARGV[1])
redis.call("ZREM", KEYS[1], ARGV[1])
redis.call("HDEL", KEYS[2], ARGV[1], ARGV[1] .. ":lease", ARGV[1] .. ":since")
return 1
