-- known: what the stage's task filter remembers of a task.
-- KEYS 1 seen root
-- ARGV filter id
-- Returns {version, outcome ("", d = done, g = gone; D, G: at an earlier version), when it was done (s)}, or nothing.
-- Twice: only reads.
return seen_task.look(KEYS[1], ARGV[1])
