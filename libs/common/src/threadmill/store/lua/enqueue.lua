-- enqueue: queue requests that no task and no page asked for.
-- KEYS 1 requests  2 stats  3 seen root  4 jobs root  5 submitted token
-- ARGV stage, job, then per request: fingerprint ("" = do not filter), priority, payload
-- Returns how many were queued.
-- Twice: the token, kept for ten minutes, makes the second call do nothing.
local requests, stats, seen_root, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local stage, job, queued, filtered = ARGV[1], ARGV[2], 0, 0
if not redis.call("SET", KEYS[5], 1, "NX", "PX", 600000) then return 0 end
for i = 3, #ARGV, 3 do
  local id, priority, payload = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if id == "" or seen_request.add(seen_root, "", id, "") then
    local record = compose(job, "", priority, "0", "0", "", payload)
    place(requests, jobs_root, job, member_of(sequence(stats, 1), record), priority, score)
    queued = queued + 1
  else
    filtered = filtered + 1
  end
end
count(stats, "accepted", queued)
count(stats, "filtered", filtered)
count_job(job, stage, "accepted", queued)
flush(jobs_root, now_ms())
return queued
