-- look_hash: look through a portion of a hash (leased pages, dead letters) for values that hold two texts.
-- KEYS 1 hash
-- ARGV cursor, about how many values to look at, then pairs of texts: a match holds both of one of the pairs
-- Returns {cursor to go on with ("0" = that was the end), then per match: field, value}. A value that was there all the
--      time is found; one may be found twice.
-- Twice: only reads.
local reply = redis.call("HSCAN", KEYS[1], ARGV[1], "COUNT", ARGV[2])
local answer, values = { reply[1] }, reply[2]
for i = 1, #values, 2 do
  local value = values[i + 1]
  for pair = 3, #ARGV, 2 do
    if string.find(value, ARGV[pair], 1, true) and string.find(value, ARGV[pair + 1], 1, true) then
      answer[#answer + 1] = values[i]
      answer[#answer + 1] = value
      break
    end
  end
end
return answer
