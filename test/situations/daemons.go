package situations

// daemons are the situations of single daemons, and of what the storage system says of them.
var daemons = []Situation{}
