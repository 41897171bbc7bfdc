-- renew: say that pages are still being worked on.
-- KEYS 1 leases
-- ARGV ttl in ms, then lease ids
-- Returns the lease ids that are no longer held; renewing those does nothing.
-- Twice: the second call moves the expiry by the time between the two.
local until_ms = now_ms() + tonumber(ARGV[1])
local lost = {}
redis.call("ZREM", KEYS[1], "") -- changes nothing, and passes in a full server; see `although_full`
for i = 2, #ARGV do
  if redis.call("ZSCORE", KEYS[1], ARGV[i]) then
    redis.call("ZADD", KEYS[1], "XX", until_ms, ARGV[i])
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return lost
