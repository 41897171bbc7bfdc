-- look_stream: look through a portion of a task stream for the tasks of a key. There is no index by key: a task costs
-- tens of bytes, and an index would cost as much again.
-- KEYS 1 stream
-- ARGV where to begin ("-", or "(" and an entry's id), most entries to look at, key
-- Returns {where to go on ("" = that was the end), entries looked at, then per match: {its place among those, from 1,
--      entry id, fields}}. A task from outside may be another's: it is JSON that holds the key somewhere.
-- Twice: only reads.
local limit, key = tonumber(ARGV[2]), ARGV[3]
local entries = redis.call("XRANGE", KEYS[1], ARGV[1], "+", "COUNT", limit)
local answer = { #entries == limit and "(" .. entries[limit][1] or "", #entries }
for at, entry in ipairs(entries) do
  local fields = entry[2]
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    local found = name == "k" and value == key
    if name == "task" then
      -- JSON may spell a character by a backslash and others.
      found = string.find(value, key, 1, true) or string.find(value, "\\", 1, true)
    end
    if found then
      answer[#answer + 1] = { at, entry[1], fields }
      break
    end
  end
end
return answer
