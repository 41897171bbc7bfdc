-- refuse: park tasks that cannot be admitted, with their bytes. Part of the verb park, for stream entries.
-- KEYS 1 stream  2 stats  3 dead  4 dead index  5 jobs root
-- ARGV group, stage, then per task: entry id, streamed, job, history, reason, error, bytes
-- Returns per task 1, or 0 if somebody else took it.
-- Twice: XACK answers 0 the second time.
local stream, stats, dead, index, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, stage, now = ARGV[1], ARGV[2], now_ms()
local answers = {}
for i = 3, #ARGV, 7 do
  local entry, streamed, job, history, reason, err, body = unpack(ARGV, i, i + 6)
  if redis.call("XACK", stream, group, entry) == 1 then
    redis.call("XDEL", stream, entry)
    if streamed == "1" then
      count(stats, "streamed", -1)
    else
      count(stats, "accepted", 1)
      count_job(job, stage, "accepted", 1)
    end
    bury(dead, index, stats, now, reason, "task", err, job .. US .. history .. US .. body)
    count_job(job, stage, "dead", 1)
    answers[#answers + 1] = 1
  else
    answers[#answers + 1] = 0
  end
end
flush(jobs_root, now)
return answers
