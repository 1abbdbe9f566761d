package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/backup"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// FetchBackup has a server take a backup, and writes it to a new file that only its owner can read, with the rights of config,
// an administrator's. What arrived is verified before the file has its name.
func FetchBackup(ctx context.Context, config *rest.Config, path string) (*backup.Header, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%w: %s exists: choose another name, a backup overwrites nothing", ErrRefused, path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*") // Its permissions are 0600.
	if err != nil {
		return nil, fmt.Errorf("while writing the backup: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // it is gone when all went well
	if err := errors.Join(receive(ctx, config, f), f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("while receiving the backup: %w", err)
	}
	h, err := backup.Verify(f.Name(), "")
	if err != nil {
		return nil, fmt.Errorf("while checking what was received: %w", err)
	}
	if err := nameNew(f.Name(), path, renameNew); err != nil {
		return nil, err
	}
	return h, atomicfile.SyncDir(filepath.Dir(path))
}

// nameNew gives a file its name, and overwrites nothing. Where the file system cannot do both at once, the name is taken with an empty file first, which nobody
// else writes over: whatever cuts this off, what has the name is whole or empty.
func nameNew(old, path string, rename func(old, path string) error) error {
	err := rename(old, path)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		err = takeName(old, path)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %s exists: choose another name, a backup overwrites nothing", ErrRefused, path)
	case err != nil:
		return fmt.Errorf("while writing the backup: %w", err)
	}
	return nil
}

func takeName(old, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), os.Rename(old, path)); err != nil {
		return errors.Join(err, os.Remove(path)) // the empty one
	}
	return nil
}

// renameNew renames a file to a name that nothing has. Not every file system can do that, and fewer have hard links, which FAT has not.
func renameNew(old, path string) error {
	return unix.Renameat2(unix.AT_FDCWD, old, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
}

// refusalOf is what the API said in its own form, such as that something is forbidden, or else its words.
func refusalOf(answer string, text []byte) error {
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" && status.Message != "" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf("the server answered %s: %s", answer, strings.TrimSpace(string(text)))
}

func receive(ctx context.Context, config *rest.Config, w io.Writer) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base.JoinPath(BackupPath).String(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		return refusalOf(response.Status, text)
	}
	n, err := io.Copy(w, response.Body)
	if err == nil && n != response.ContentLength {
		err = fmt.Errorf("%d of %d bytes came: the connection was cut off", n, response.ContentLength)
	}
	return err
}
