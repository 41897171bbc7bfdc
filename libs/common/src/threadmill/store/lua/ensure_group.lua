-- ensure_group: make a stream's consumer group, at its beginning: nothing submitted before is passed over.
-- KEYS 1 stream
-- ARGV group
-- Returns 1 if it was made, 0 if it was there.
-- Twice: it is there.
redis.call("XDEL", KEYS[1], "0-1") -- changes nothing, and passes in a full server; see `although_full`
local reply = redis.pcall("XGROUP", "CREATE", KEYS[1], ARGV[1], "0", "MKSTREAM")
if not reply.err then return 1 end
return string.find(reply.err, "BUSYGROUP", 1, true) and 0 or reply
