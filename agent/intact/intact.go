// Package intact knows whether the files that an agent wrote for a daemon are still as it wrote
// them.
package intact

import (
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Files are the files of a daemon, by their paths below its directory: what is in them and who may
// read them. Of a key it has no more than its hash.
type Files map[string]file

type file struct {
	sum  [sha256.Size]byte
	perm os.FileMode
}

// Of are the files of a daemon as they are now. One that cannot be read is left out.
func Of(dir string, spec []api.DaemonFile) Files {
	files := Files{}
	for i := range spec {
		path := filepath.Join(dir, spec[i].Path)
		st, err := os.Stat(path)
		if err != nil {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		files[spec[i].Path] = file{sha256.Sum256(content), st.Mode().Perm()}
	}
	return files
}

// Are says whether the files are as they were.
func (f Files) Are(now Files) bool { return maps.Equal(f, now) }
