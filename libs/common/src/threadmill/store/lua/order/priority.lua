-- A larger priority comes first; equal ones in the order they came.
return function(priority, seq) return -priority end
