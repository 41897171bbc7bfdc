-- The last to come is the first.
return function(priority, seq) return -seq end
