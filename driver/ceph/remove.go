package ceph

import "github.com/holdfast-storage/holdfast/engine"

// ending is how a deleted cluster goes. OSDs and mgrs take leave of the mons, so the mons are the last. Also a mon's directory is data:
// without any of them nothing of the OSDs' data can be found again. A manager has none.
var ending = engine.Ending{
	Object: label,
	Data:   func(daemonType string) bool { return daemonType != TypeMgr },
	Order:  []string{TypeOSD, TypeMgr, TypeMon},
}
