package servicetest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
)

// entry is a file or directory. Its content is a hash, or where a link leads.
type entry struct {
	Mode    fs.FileMode
	Content string
	ModTime time.Time
}

// tree lists what is in the daemon's places. exact is for one daemon at two times; without it two daemons can be compared: what differs between any two of
// them is left out.
func (s *Subject) tree(t *testing.T, l *service.Local, exact bool) map[string]entry {
	t.Helper()
	all, names := map[string]entry{}, namesIn(l, s.outside(l))
	roots := map[string]string{"data": l.Data, "run": l.Run, "log": l.Log}
	for _, path := range s.outside(l) {
		roots["outside/"+filepath.Base(path)] = path
	}
	for name, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			is, err := look(path, names)
			rel := name + strings.TrimPrefix(path, root)
			if exact {
				all[rel] = is
				return err
			}
			is.ModTime = time.Time{}
			pattern := s.varies(rel)
			if pattern == "" {
				all[names.Replace(rel)] = is
				return err
			}
			all[pattern] = entry{Mode: is.Mode}
			if d.IsDir() {
				return fs.SkipDir
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// varies returns the pattern that a file varies by, or nothing.
func (s *Subject) varies(rel string) string {
	for _, pattern := range s.Varies {
		if is, err := filepath.Match(pattern, rel); is && err == nil {
			return pattern
		}
	}
	return ""
}

// namesIn replaces what is another one for each daemon: where its directories are, and its devices.
func namesIn(l *service.Local, outside []string) *strings.Replacer {
	names := append([]string{l.Data, l.Run, l.Log}, outside...)
	for name, d := range l.Devices {
		names = append(append(names, name, d.ID, d.Path), d.Links...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) }) // /dev/loop10 before /dev/loop1
	var pairs []string
	for _, name := range names {
		pairs = append(pairs, name, "NAME")
	}
	return strings.NewReplacer(pairs...)
}

func look(path string, names *strings.Replacer) (e entry, err error) {
	st, err := os.Lstat(path)
	if err != nil {
		return e, err
	}
	e = entry{Mode: st.Mode(), ModTime: st.ModTime()}
	switch {
	case st.Mode().IsRegular():
		var text []byte
		text, err = os.ReadFile(path)
		sum := sha256.Sum256([]byte(names.Replace(string(text))))
		e.Content = hex.EncodeToString(sum[:8])
	case st.Mode()&os.ModeSymlink != 0:
		e.Content, err = os.Readlink(path)
		e.Content = names.Replace(e.Content)
	}
	return e, err
}

// testSecrets looks whether others may read a file with a secret. That none is among arguments is looked at in all cases.
func testSecrets(t *testing.T, s *Subject) {
	l := s.New(t)
	s.mustBring(t, l)
	for _, root := range append([]string{l.Data, l.Run, l.Log}, s.outside(l)...) {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			st, err := d.Info()
			if err != nil {
				return err
			}
			switch {
			case d.IsDir() && st.Mode().Perm()&0o001 == 0:
				return fs.SkipDir // nobody else comes in
			case !st.Mode().IsRegular() || st.Mode().Perm()&0o004 == 0:
				return nil
			}
			text, err := os.ReadFile(path)
			for _, secret := range s.Secrets {
				if strings.Contains(string(text), secret) {
					t.Errorf("%s holds a secret, and everybody may read it", path)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
