-- restore_requests: pages that were exported wait in the request queue again, or are delayed. The task filter remembers
-- their keys.
-- KEYS 1 requests  2 delayed  3 stats  4 runs  5 seen root  6 jobs root  7 token
-- ARGV stage, how long the token is kept (ms), then per page: job, run ("" = none), priority, deliveries, failures,
--      history, payload, when it is due (ms; "" = now), filter id of its key ("" = it has none), version
-- Pages of one run that come in one call are one run again; what the run had seen before is not known.
-- Returns how many; -1 if this token was used before.
-- Twice: the token makes the second call do nothing.
local requests, delayed, stats, runs = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local seen_root, jobs_root = KEYS[5], KEYS[6]
local stage, restored, renamed, pages = ARGV[1], 0, {}, {}
if not redis.call("SET", KEYS[7], 1, "NX", "PX", ARGV[2]) then return -1 end
for i = 3, #ARGV, 10 do
  local job, run, priority, deliveries, failures, history, payload, due, id, version = unpack(ARGV, i, i + 9)
  local seq = sequence(stats, 1)
  if run ~= "" then
    renamed[run] = renamed[run] or string.format("%.0f", seq)
    run = renamed[run]
    pages[run] = (pages[run] or 0) + 1
  end
  local member = member_of(seq, compose(job, run, priority, deliveries, failures, history, payload))
  if due ~= "" then
    redis.call("ZADD", delayed, due, member)
  else
    place(requests, jobs_root, job, member, priority, score)
  end
  if id ~= "" then seen_task.add(seen_root, "", id, version) end
  count_job(job, stage, "accepted", 1)
  restored = restored + 1
end
for run, n in pairs(pages) do run_moves(runs, run, n - 1) end
count(stats, "accepted", restored)
flush(jobs_root, now_ms())
return restored
