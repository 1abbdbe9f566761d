package doctor

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/holdfast-storage/holdfast/control/damaged"
)

// checkDamage reports files of this server's member of etcd that are damaged, or were until the
// server got the data of the others.
func checkDamage(f *Facts) []Finding {
	n := f.Local.Damage
	if n == nil {
		return ok("the files of etcd on this machine were whole at the last start")
	}
	at := n.Time.UTC().Format(time.RFC3339)
	if n.Kept == "" {
		remedy := damaged.NextStep(f.DataDir, false)
		if before := damaged.Before(f.DataDir, f.Now); before != "" {
			remedy = "the disk of this machine probably fails, because it is the second time within a day: check 'dmesg', " +
				"replace the disk, then remove " + before + " and restart holdfast here"
		}
		return finding(Fail, fmt.Sprintf("the files of etcd on this machine are damaged since %s: %s", at, n), remedy)
	}
	kept := filepath.Join(f.DataDir, n.Kept)
	return finding(Warn, fmt.Sprintf("the files of etcd on this machine were damaged at %s (%s), and this server got "+
		"the data of the others", at, n), "check 'dmesg' for errors of the disk, then remove "+kept)
}
