package vm

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// notNeeded is what packages have for people, and what Python makes anew.
var notNeeded = regexp.MustCompile(`^/usr/share/(doc|man|lintian|locale)/|/__pycache__/|/tests?/`)

// Packages are files for a machine: of Debian packages that are installed on this one, those whose paths match, in their places, with the libraries that
// they need. Symbolic links are left out.
func Packages(ctx context.Context, wanted *regexp.Regexp, names ...string) (map[string][]byte, error) {
	out, err := exec.CommandContext(ctx, "dpkg", append([]string{"-L"}, names...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("while listing the files of %s (are they installed?): %w", strings.Join(names, ", "), err)
	}
	files := map[string][]byte{}
	var linked []string
	for line := range strings.Lines(string(out)) {
		path := strings.TrimSpace(line)
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || !wanted.MatchString(path) || notNeeded.MatchString(path) {
			continue
		}
		if err := add(files, path, path); err != nil {
			return nil, fmt.Errorf("while reading a file of a package: %w", err)
		}
		if strings.HasPrefix(string(files[strings.TrimPrefix(path, "/")]), "\x7fELF") {
			linked = append(linked, path)
		}
	}
	libraries, err := Programs(ctx, linked...)
	maps.Copy(files, libraries)
	return files, err
}
