package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/internal/redact"
)

// most is how long one file of a bundle may be, in bytes; the end of a longer one is cut off.
const most = 32 << 20

// archive is a tar.gz below one directory. Each text goes through the redactor, which is set before the first one.
type archive struct {
	dir      string
	now      time.Time
	gzip     *gzip.Writer
	tar      *tar.Writer
	redactor *redact.Redactor
}

func newArchive(w io.Writer, dir string, now time.Time) *archive {
	a := &archive{dir: dir, now: now, gzip: gzip.NewWriter(w), redactor: redact.New(nil)}
	a.tar = tar.NewWriter(a.gzip)
	return a
}

// add writes a text as a file, without secrets.
func (a *archive) add(name, text string) error {
	text = a.redactor.Text(text)
	if len(text) > most {
		text = text[:most] + "\n[cut off here]\n"
	}
	header := &tar.Header{
		Name: path.Join(a.dir, name), Mode: 0o600, Size: int64(len(text)), ModTime: a.now,
		Format: tar.FormatPAX,
	}
	if err := a.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.WriteString(a.tar, text)
	return err
}

// close adds the list of what is missing, and ends the archive.
func (a *archive) close(missing []string) error {
	text := "Everything was collected.\n"
	if len(missing) > 0 {
		text = strings.Join(missing, "\n") + "\n"
	}
	return errors.Join(a.add("NOT-COLLECTED.txt", text), a.tar.Close(), a.gzip.Close())
}
