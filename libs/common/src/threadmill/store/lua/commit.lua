-- commit: everything that pages caused, in one step, for each page only if its lease is still held.
-- KEYS 1 leases  2 leased  3 requests  4 stats  5 runs  6 seen root  7 items  8 items stats  9 jobs root  10 met root,
--      then per stage handed down to: tasks, express, stats, seen root
-- ARGV stage, targets' stage names joined by commas, 1 to tell of posts that are complete, n pages, then per page:
--      lease id, outcome counter ("" or a counter's name), own fingerprint,
--      key of its task and the key's filter id ("" = nobody's), what its task came to (d done, g gone),
--      posts the board listed (0 no matter, 1 remembered, 2 remembered, and asked for when the run ends without them),
--      children: n, and n times: condition (0 always, 1 if something new was submitted, 2 if nothing was; plus ten times
--                the number of subtasks that must not all have been known at the page's end, for 1),
--                fingerprint ("" = do not filter), priority, payload
--      subtasks: n, and n times: target (1-based), key, filter id, version, force (0 no, 1 yes, 2 yes and express),
--                parent, depth, extras
--      items: n, JSON array
-- Returns per page: committed (1, 0 = fenced), queued, submitted, filtered.
-- Twice: the leases are gone, so every page is fenced and nothing happens.
local leases, leased, requests, stats, runs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local seen_root, items, items_stats, jobs_root, met = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local stage, telling = ARGV[1], ARGV[3] == "1"
local targets = {}
for name in string.gmatch(ARGV[2], "[^,]+") do
  local root = 10 + 4 * #targets
  targets[#targets + 1] =
    { name = name, tasks = KEYS[root + 1], express = KEYS[root + 2], stats = KEYS[root + 3], seen = KEYS[root + 4] }
end
local answers, i = {}, 5

local function hand_down(target, express, job, key, parent, depth, known, version, extras)
  add_task(express and target.express or target.tasks, job, key, parent, depth, known, version, extras)
  count(target.stats, "accepted", 1)
  count(target.stats, "streamed", 1)
  count_job(job, target.name, "accepted", 1)
end

-- Whether a follow-up is wanted, by what the page brought; `tail` subtasks in a row at its end were known.
local function wanted(condition, submitted, tail)
  local when, margin = condition % 10, math.floor(condition / 10)
  if when == 1 then return submitted > 0 and (margin == 0 or tail < margin) end
  return when == 0 or submitted == 0
end

-- The posts that stood on a board and were not listed by a whole scan of it are asked for: they will say what became of
-- them. Returns how many.
local function ask_for_missing(board, run, job)
  local listed, scanned = met .. ":b:" .. board, met .. ":r:" .. run
  local missing = redis.call("SDIFF", listed, scanned)
  table.sort(missing)
  for _, post in ipairs(missing) do
    hand_down(targets[1], false, job, post, board, "1", "", "", '{"f":true}')
    redis.call("SREM", listed, post)
  end
  redis.call("DEL", scanned)
  return #missing
end

for _ = 1, tonumber(ARGV[4]) do
  local lease, outcome, own, key, key_id, came_to, listing = unpack(ARGV, i, i + 6)
  local children = tonumber(ARGV[i + 7])
  local child_at = i + 8
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

    local tail = 0
    for at = subtask_at + 1, item_at - 1, 8 do
      local target, post, id, version, force, parent, depth, extras = unpack(ARGV, at, at + 7)
      target = targets[tonumber(target)]
      local new, known = seen_task.add(target.seen, "", id, version)
      if new or force ~= "0" then
        hand_down(target, force == "2", job, post, parent, depth, force ~= "0" and "" or known, version, extras)
        submitted, tail = submitted + 1, 0
      else
        filtered, tail = filtered + 1, tail + 1
        count(target.stats, "filtered", 1)
        count_job(job, target.name, "filtered", 1)
      end
      if listing ~= "0" then
        redis.call("SADD", met .. ":b:" .. key, post)
        if listing == "2" then redis.call("SADD", met .. ":r:" .. run, post) end
      end
    end
    -- A scan that is given up half-way leaves its set behind.
    if listing == "2" and subtasks > 0 then redis.call("EXPIRE", met .. ":r:" .. run, 604800) end

    local remembered = own == ""
    for at = child_at, subtask_at - 1, 4 do
      local condition, id, priority, payload = unpack(ARGV, at, at + 3)
      if wanted(tonumber(condition), submitted, tail) then
        if not remembered then
          seen_request.add(seen_root, run, own, "")
          remembered = true
        end
        if id == "" or seen_request.add(seen_root, run, id, "") then
          local record = compose(job, run, priority, "0", "0", "", payload)
          place(requests, jobs_root, job, member_of(sequence(stats, 1), record), priority, score)
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
    count_job(job, stage, "accepted", queued)
    count_job(job, stage, "done", 1)
    if run_moves(runs, run, queued - 1) then
      seen_request.over(seen_root, run)
      if key ~= "" then seen_task.finish(seen_root, key_id, came_to) end
      if listing == "2" then submitted = submitted + ask_for_missing(key, run, job) end
      if telling and key ~= "" and (#targets == 0 or subtasks == 0) then
        tell(jobs_root, "event", "post_complete", "stage", stage, "key", key, "job", job)
      end
    end
    count(stats, "submitted", submitted)
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
