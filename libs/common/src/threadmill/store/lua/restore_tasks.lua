-- restore_tasks: tasks that were exported wait in a task stream again. They pass the task filter, which remembers them.
-- KEYS 1 stream (tasks or express)  2 stats  3 seen root  4 jobs root  5 token
-- ARGV stage, how long the token is kept (ms), then per task: job, key, filter id, version, parent, depth, known, extras
-- Returns how many; -1 if this token was used before.
-- Twice: the token makes the second call do nothing.
local stream, stats, seen_root, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local stage, restored = ARGV[1], 0
if not redis.call("SET", KEYS[5], 1, "NX", "PX", ARGV[2]) then return -1 end
for i = 3, #ARGV, 8 do
  local job, key, id, version, parent, depth, known, extras = unpack(ARGV, i, i + 7)
  seen_task.add(seen_root, "", id, version)
  add_task(stream, job, key, parent, depth, known, version, extras)
  count_job(job, stage, "accepted", 1)
  restored = restored + 1
end
count(stats, "accepted", restored)
count(stats, "streamed", restored)
flush(jobs_root, now_ms())
return restored
