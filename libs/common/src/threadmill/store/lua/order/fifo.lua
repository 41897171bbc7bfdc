-- In the order they came.
return function(priority, seq) return 0 end
