-- leave_items: a store's consumer that stopped in good order is removed, and so are others that ended long ago.
-- None is removed while entries are pending for it: with its record they would be lost to its group.
-- KEYS 1 items
-- ARGV group, consumer ("" = none in particular), silence after which a consumer is gone (ms)
-- Returns how many were removed.
-- Twice: there is nothing left to remove.
local consumers = redis.pcall("XINFO", "CONSUMERS", KEYS[1], ARGV[1])
-- No stream, or no group: nothing to leave.
if consumers.err then return 0 end
local removed = 0
for _, info in ipairs(consumers) do
  local is = {}
  for i = 1, #info, 2 do is[info[i]] = info[i + 1] end
  if is.pending == 0 and (is.name == ARGV[2] or is.idle >= tonumber(ARGV[3])) then
    redis.call("XGROUP", "DELCONSUMER", KEYS[1], ARGV[1], is.name)
    removed = removed + 1
  end
end
return removed
