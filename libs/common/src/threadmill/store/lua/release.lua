-- release: give leases back untouched, as a worker that stops does. Not a failure, not a crash.
-- KEYS 1 leases  2 leased  3 requests  4 jobs root
-- ARGV lease ids
-- Returns how many were given back.
-- Twice: the second call finds none of them.
local given = 0
although_full(KEYS[2])
for i = 1, #ARGV do
  local member = redis.call("HGET", KEYS[2], ARGV[i])
  if member then
    local job, _, priority = parse(string.sub(member, 9))
    place(KEYS[3], KEYS[4], job, member, priority, score)
    redis.call("HDEL", KEYS[2], ARGV[i])
    redis.call("ZREM", KEYS[1], ARGV[i])
    given = given + 1
  end
end
return given
