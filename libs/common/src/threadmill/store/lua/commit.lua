-- commit: everything that pages caused, in one step, for each page only if its lease is still held.
-- KEYS 1 leases  2 leased  3 requests  4 stats  5 runs  6 seen root  7 items  8 items stats  9 jobs root,
--      then per stage handed down to: tasks, express, stats, seen root
-- ARGV stage, targets' stage names joined by commas, n pages, then per page:
--      lease id, outcome counter ("" or a counter's name), own fingerprint,
--      children: n, and n times: condition (0 always, 1 if something new was submitted, 2 if nothing was),
--                fingerprint ("" = do not filter), priority, payload
--      subtasks: n, and n times: target (1-based), key, filter id, version, force (0 no, 1 yes, 2 yes and express),
--                parent, depth, extras
--      items: n, JSON array
-- Returns per page: committed (1, 0 = fenced), queued, submitted, filtered.
-- Twice: the leases are gone, so every page is fenced and nothing happens.
local leases, leased, requests, stats, runs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local seen_root, items, items_stats, jobs_root = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local stage = ARGV[1]
local targets = {}
for name in string.gmatch(ARGV[2], "[^,]+") do targets[#targets + 1] = name end
local answers, i = {}, 4

for _ = 1, tonumber(ARGV[3]) do
  local lease, outcome, own = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local children = tonumber(ARGV[i + 3])
  local child_at = i + 4
  local subtask_at = child_at + 4 * children
  local subtasks = tonumber(ARGV[subtask_at])
  local item_at = subtask_at + 1 + 8 * subtasks
  i = item_at + 2
  local member = redis.call("HGET", leased, lease)
  local queued, submitted, filtered = 0, 0, 0
  if member then
    local job, run = parse(string.sub(member, 9))
    redis.call("HDEL", leased, lease)
    redis.call("ZREM", leases, lease)

    for at = subtask_at + 1, item_at - 1, 8 do
      local target, key, id, version, force, parent, depth, extras = unpack(ARGV, at, at + 7)
      target = tonumber(target)
      local root = 6 + 4 * target
      local stream = force == "2" and KEYS[root + 1] or KEYS[root]
      local target_stats, target_seen = KEYS[root + 2], KEYS[root + 3]
      local new, known = seen_task.add(target_seen, "", id, version)
      if new or force ~= "0" then
        add_task(stream, job, key, parent, depth, force ~= "0" and "" or known, extras)
        submitted = submitted + 1
        count(target_stats, "accepted", 1)
        count(target_stats, "streamed", 1)
        count_job(job, targets[target], "accepted", 1)
      else
        filtered = filtered + 1
        count(target_stats, "filtered", 1)
        count_job(job, targets[target], "filtered", 1)
      end
    end

    local remembered = own == ""
    for at = child_at, subtask_at - 1, 4 do
      local condition, id, priority, payload = unpack(ARGV, at, at + 3)
      if condition == "0" or (condition == "1") == (submitted > 0) then
        if not remembered then
          seen_request.add(seen_root, run, own, "")
          remembered = true
        end
        if id == "" or seen_request.add(seen_root, run, id, "") then
          local record = compose(job, run, priority, "0", "0", "", payload)
          place(requests, member_of(sequence(stats, 1), record), priority, score)
          queued = queued + 1
        else
          filtered = filtered + 1
          count(stats, "filtered", 1)
          count_job(job, stage, "filtered", 1)
        end
      end
    end

    local collected = tonumber(ARGV[item_at])
    if collected > 0 then
      redis.call("XADD", items, "*", "s", stage, "i", ARGV[item_at + 1])
      count(items_stats, "committed", collected)
      count(stats, "items", collected)
      count_job(job, stage, "items", collected)
    end
    if outcome ~= "" then
      count(stats, outcome, 1)
      count_job(job, stage, outcome, 1)
    end
    count(stats, "done", 1)
    count(stats, "accepted", queued)
    count(stats, "submitted", submitted)
    count_job(job, stage, "accepted", queued)
    count_job(job, stage, "done", 1)
    if run_moves(runs, run, queued - 1) then seen_request.over(seen_root, run) end
    answers[#answers + 1] = 1
  else
    count(stats, "fenced", 1)
    answers[#answers + 1] = 0
  end
  answers[#answers + 1] = queued
  answers[#answers + 1] = submitted
  answers[#answers + 1] = filtered
end
flush(jobs_root, now_ms())
return answers
