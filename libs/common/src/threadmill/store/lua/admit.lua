-- admit: turn tasks into their root requests: the stream entry goes, the requests are queued.
-- KEYS 1 stream  2 requests  3 stats  4 runs  5 jobs root
-- ARGV group, stage, then per task: entry id, streamed (1 = counted when submitted, 0 = pushed from outside),
--      job, history, n, and n times: priority, payload
-- Each task begins a run, named by the sequence of its first request.
-- Returns per task 1, or 0 if somebody else admitted it.
-- Twice: XACK answers 0 the second time and the task is left alone.
local stream, requests, stats, runs, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local group, stage = ARGV[1], ARGV[2]
local answers, i = {}, 3
while i <= #ARGV do
  local entry, streamed, job, history = unpack(ARGV, i, i + 3)
  local n = tonumber(ARGV[i + 4])
  i = i + 5
  if redis.call("XACK", stream, group, entry) == 1 then
    redis.call("XDEL", stream, entry)
    if streamed == "1" then
      count(stats, "streamed", -1)
    else
      count(stats, "accepted", 1)
      count_job(job, stage, "accepted", 1)
    end
    local seq = sequence(stats, n)
    local run = string.format("%.0f", seq)
    for k = 0, n - 1 do
      local priority, payload = ARGV[i + 2 * k], ARGV[i + 2 * k + 1]
      local record = compose(job, run, priority, "0", "0", history, payload)
      place(requests, jobs_root, job, member_of(seq + k, record), priority, score)
    end
    if n == 0 then
      count(stats, "done", 1)
      count_job(job, stage, "done", 1)
    else
      count(stats, "accepted", n - 1)
      count_job(job, stage, "accepted", n - 1)
      run_moves(runs, run, n - 1)
    end
    answers[#answers + 1] = 1
  else
    answers[#answers + 1] = 0
  end
  i = i + 2 * n
end
flush(jobs_root, now_ms())
return answers
