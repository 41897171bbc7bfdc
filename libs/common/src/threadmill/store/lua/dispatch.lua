-- dispatch: have boards scanned that are due: each gets a task in the stage's stream, under a job of its own, and the time
-- it is due next; each only if it is still as it was read, so any number of dispatchers may do this at once.
-- KEYS 1 looks root  2 schedule  3 boards  4 schedule stats  5 jobs root,
--      of the stage that scans: 6 tasks  7 express  8 requests  9 leases  10 delayed  11 stats  12 seen root
-- ARGV stage, stage it hands down to, threshold, seconds that a finished scan's books are kept,
--      then per board: id, due as read, entry as read, due next, entry, look, job of its last scan, job, filter id, extras
-- Returns per board: 1 dispatched, 0 somebody else changed it meanwhile, 2 no room under the threshold, 3 its last scan is
--         under way.
-- Twice: boards are as the first call left them, which the second tells by 1, submitting nothing.
local looks, schedule, boards, stats, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local tasks, stage_stats, seen_root = KEYS[6], KEYS[11], KEYS[12]
local stage, target, threshold, keep = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local now = now_ms()
local queued = board.queued(tasks, KEYS[7], KEYS[8], KEYS[9], KEYS[10])
local idle, room = queued == 0, threshold - queued

local function dispatch(id, was_due, was, due, entry, look, last_job, job, filter_id, extras)
  if board.is_as_read(schedule, boards, id, due, entry) then return 1 end
  if not board.is_as_read(schedule, boards, id, was_due, was) then return 0 end
  if room <= 0 then return 2 end
  if not idle and board.books(jobs_root, last_job, stage, target) > 0 then return 3 end
  -- A job that somebody else has already: the next look draws another.
  if redis.call("EXISTS", jobs_root .. job) == 1 then return 0 end
  board.write(looks, schedule, boards, id, was, due, entry, look)
  seen_task.add(seen_root, "", filter_id, "")
  add_task(tasks, job, id, "", 0, "", "", extras)
  redis.call("HSET", jobs_root .. job, "keep", keep)
  count(stage_stats, "accepted", 1)
  count(stage_stats, "streamed", 1)
  count_job(job, stage, "accepted", 1)
  count(stats, "dispatched", 1)
  count(stats, "late_ms", math.max(0, now - tonumber(was_due)))
  room = room - 1
  return 1
end

local answers = {}
for i = 5, #ARGV, 10 do answers[#answers + 1] = dispatch(unpack(ARGV, i, i + 9)) end
flush(jobs_root, now)
return answers
