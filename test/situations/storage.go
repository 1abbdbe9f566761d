package situations

// storage are the situations of pools, file systems, placement groups, devices and plans.
var storage = []Situation{}
