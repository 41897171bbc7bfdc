-- see: tell whether ids are new, and remember them.
-- KEYS 1 seen root
-- ARGV run, then per id: id, version
-- Returns per id: 1 if it was new, else 0; the version known before.
-- Twice: the second answer is "known", which is the truth by then.
local answers = {}
for i = 2, #ARGV, 2 do
  local new, known = seen_request.add(KEYS[1], ARGV[1], ARGV[i], ARGV[i + 1])
  answers[#answers + 1] = new and 1 or 0
  answers[#answers + 1] = known
end
return answers
