package situations

// hosts are the situations of hosts, agents and servers.
var hosts = []Situation{}
