-- claim_items: a store's consumer takes over the entries that any consumer took long ago and never settled.
-- KEYS 1 items
-- ARGV group, consumer, idle time from which an entry is taken over (ms)
-- Returns how many were taken over; they are read as this consumer's pending entries.
-- Twice: those taken over are no longer idle.
-- XAUTOCLAIM looks at a part of what is pending, so it is asked until its cursor is back at the start. What is pending is
-- a batch for each consumer at most, so this is short.
local taken, cursor = 0, "0-0"
repeat
  local reply = redis.pcall("XAUTOCLAIM", KEYS[1], ARGV[1], ARGV[2], ARGV[3], cursor, "COUNT", 1000, "JUSTID")
  -- No stream, or no group: nothing is pending, and the next read makes them.
  if reply.err then return string.find(reply.err, "NOGROUP", 1, true) and taken or reply end
  cursor, taken = reply[1], taken + #reply[2]
until cursor == "0-0"
return taken
