-- restore_letters: dead letters that were exported lie parked again, under new ids. The task filter remembers their keys.
-- KEYS 1 dead  2 dead index  3 stats  4 seen root  5 jobs root  6 token
-- ARGV stage, how long the token is kept (ms), then per letter: kind, reason, error, when (ms), job, history,
--      body (a request's payload, or a task's bytes), of a request: priority, deliveries, failures, then
--      filter id of its key ("" = it has none), version
-- Each page is a run of its own: what became of the others of its run is not known.
-- Returns how many; -1 if this token was used before.
-- Twice: the token makes the second call do nothing.
local dead, index, stats, seen_root, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local stage, restored = ARGV[1], 0
if not redis.call("SET", KEYS[6], 1, "NX", "PX", ARGV[2]) then return -1 end
for i = 3, #ARGV, 12 do
  local kind, reason, err, at, job, history, body, priority, deliveries, failures = unpack(ARGV, i, i + 9)
  local id, version = ARGV[i + 10], ARGV[i + 11]
  if kind == "request" then
    local run = string.format("%.0f", sequence(stats, 1))
    body = compose(job, run, priority, deliveries, failures, history, body)
  else
    body = job .. US .. history .. US .. body
  end
  bury(dead, index, stats, at, reason, kind, err, body)
  if id ~= "" then seen_task.add(seen_root, "", id, version) end
  count_job(job, stage, "accepted", 1)
  count_job(job, stage, "dead", 1)
  restored = restored + 1
end
count(stats, "accepted", restored)
flush(jobs_root, now_ms())
return restored
