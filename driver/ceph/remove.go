package ceph

import "github.com/holdfast-storage/holdfast/engine"

// ending is how a deleted cluster goes. What serves resources goes before all others. OSDs and mgrs take leave of the mons, so the mons are the last. Also a mon's directory is data:
// without any of them nothing of the OSDs' data can be found again. What is stateless has none.
var ending = engine.Ending{
	Object: label,
	Data:   func(daemonType string) bool { return !stateless(daemonType) },
	Order:  []string{TypeOSD, TypeMgr, TypeMon},
}
