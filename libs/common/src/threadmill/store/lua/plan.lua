-- plan: put boards on the schedule, change them, or take them off it; each only if it is still as it was read.
-- KEYS 1 looks root  2 schedule  3 boards  4 schedule stats  5 jobs root
-- ARGV per board: id, due as read ("" = it was not on the schedule), entry as read ("" = there was none),
--      due ("" = it is to be off it), entry ("" = it goes), look, counter ("" = none)
-- Returns per board 1, or 0 if somebody changed it meanwhile.
-- Twice: boards are as the first call left them, which the second tells by 1, counting nothing.
local looks, schedule, boards, stats = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local answers = {}
for i = 1, #ARGV, 7 do
  local id, was_due, was, due, entry, look, counter = unpack(ARGV, i, i + 6)
  if board.is_as_read(schedule, boards, id, was_due, was) then
    local class = looks .. ":" .. board.priority_of(board.read(was))
    local again = was_due == due and was == entry and redis.call("ZSCORE", class, id) == look
    board.write(looks, schedule, boards, id, was, due, entry, look)
    if counter ~= "" and not again then count(stats, counter, 1) end
    answers[#answers + 1] = 1
  else
    answers[#answers + 1] = board.is_as_read(schedule, boards, id, due, entry) and 1 or 0
  end
end
flush(KEYS[5], now_ms())
return answers
