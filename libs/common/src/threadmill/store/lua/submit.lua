-- submit: ask a stage for work. What the stage's task filter knows at the same version is filtered.
-- KEYS 1 stream (tasks or express)  2 stats  3 seen root  4 jobs root  5 submitted token
-- ARGV stage, token, job, then per task: key, filter id, version, force, parent, depth, extras
-- Returns {submitted, filtered}; {-1, 0} if this token was submitted before.
-- Twice: the token, kept for ten minutes, makes the second call do nothing.
local stream, stats, seen_root, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local stage, token, job = ARGV[1], ARGV[2], ARGV[3]
if not redis.call("SET", KEYS[5], 1, "NX", "PX", 600000) then return { -1, 0 } end
local submitted, filtered = 0, 0
for i = 4, #ARGV, 7 do
  local key, id, version, force, parent, depth, extras = unpack(ARGV, i, i + 6)
  local new, known = seen_task.add(seen_root, "", id, version)
  if new or force == "1" then
    add_task(stream, job, key, parent, depth, force == "1" and "" or known, version, extras)
    submitted = submitted + 1
  else
    filtered = filtered + 1
  end
end
count(stats, "accepted", submitted)
count(stats, "streamed", submitted)
count(stats, "filtered", filtered)
count_job(job, stage, "accepted", submitted)
count_job(job, stage, "filtered", filtered)
flush(jobs_root, now_ms())
return { submitted, filtered }
