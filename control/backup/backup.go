// Package backup writes and reads backups of the control plane: one file that holds a snapshot of etcd, and the keys without
// which it cannot be read or served. It is a tar file, so that it can be looked into without Holdfast.
package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// Format is the format that this version of Holdfast writes.
const Format = 1

// Names of the parts of a backup. The header comes first and the checksum of the header last; it lists the others, with theirs.
const (
	headerName   = "header.json"
	checksumName = "header.sha256"
	// Database is a snapshot of etcd, as etcdctl and etcdutl know it.
	Database = "etcd.db"
	// PKI begins the names of the keys and certificates that all servers share.
	PKI = "pki/"
)

// Header says what a backup is of.
type Header struct {
	Format int `json:"format"`
	// Note tells whoever looks into the file what it holds.
	Note string `json:"note"`
	// Authority is the fingerprint of the control plane's authority: a control plane is the same while this is.
	Authority string `json:"authority"`
	// ClusterID is the id of the etcd cluster, and Revision the last one in the snapshot.
	ClusterID string    `json:"clusterID"`
	Revision  int64     `json:"revision"`
	Time      time.Time `json:"time"`
	// Generation is the life of the control plane that the data is of: it grows with each restore. What is restored from this file
	// is of a later one. Nil in files of versions that did not write it down.
	Generation *int64 `json:"generation,omitempty"`
	// Server took the backup, with this version of Holdfast.
	Server  string `json:"server"`
	Version string `json:"version"`
	// Files are the other parts.
	Files []File `json:"files"`
}

// File is a part of a backup.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const note = "This file contains the keys of the control plane, which give all rights. Protect it like a root password."

// maxSmall bounds what is read into memory: the header and the files in pki/.
const maxSmall = 1 << 20

// Write writes a backup. files are the paths of its parts, by name.
func Write(w io.Writer, h Header, names []string, files map[string]string) error {
	h.Format, h.Note, h.Files = Format, note, nil
	for _, name := range names {
		f, err := describe(name, files[name])
		if err != nil {
			return err
		}
		h.Files = append(h.Files, *f)
	}
	header, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	if err := put(out, headerName, header, h.Time); err != nil {
		return err
	}
	for _, f := range h.Files {
		if err := putFile(out, f, files[f.Name], h.Time); err != nil {
			return fmt.Errorf("while writing the backup: %w", err)
		}
	}
	sum := sha256.Sum256(header)
	if err := put(out, checksumName, []byte(hex.EncodeToString(sum[:])+"\n"), h.Time); err != nil {
		return err
	}
	return out.Close()
}

func describe(name, path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("while writing the backup: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return nil, fmt.Errorf("while writing the backup: %w", err)
	}
	return &File{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

func put(out *tar.Writer, name string, data []byte, at time.Time) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: at}); err != nil {
		return fmt.Errorf("while writing the backup: %w", err)
	}
	_, err := out.Write(data)
	return err
}

func putFile(out *tar.Writer, f File, path string, at time.Time) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := out.WriteHeader(&tar.Header{Name: f.Name, Mode: 0o600, Size: f.Size, ModTime: at}); err != nil {
		return err
	}
	_, err = io.CopyN(out, in, f.Size)
	return err
}

// ReadHeader reads the header alone; the rest of the file is not looked at.
func ReadHeader(path string) (*Header, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, _, err := readHeader(tar.NewReader(f), path)
	return h, err
}

func readHeader(in *tar.Reader, path string) (h *Header, raw []byte, err error) {
	entry, err := in.Next()
	if err != nil || entry.Name != headerName {
		return nil, nil, fmt.Errorf("%s is not a backup of Holdfast: create one with 'holdfast backup FILE'", path)
	}
	if raw, err = small(in); err != nil {
		return nil, nil, damaged(path, err)
	}
	h = &Header{}
	if err := json.Unmarshal(raw, h); err != nil {
		return nil, nil, damaged(path, err)
	}
	if h.Format > Format {
		return nil, nil, fmt.Errorf("the backup %s was made by holdfast %s (format %d, this one knows %d): install that version", path, h.Version, h.Format, Format)
	}
	return h, raw, nil
}

func small(in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxSmall+1))
	if err == nil && len(data) > maxSmall {
		err = errors.New("a part is too large")
	}
	return data, err
}

func damaged(path string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it is cut off")
	}
	return fmt.Errorf("the backup %s is damaged: %w: use another one; each server keeps some in 'snapshots' below its data directory", path, err)
}

// Verify reads all of a backup and compares every checksum. dir, where given, receives the parts; it must exist. A file is
// complete there when Verify returns nil.
func Verify(path, dir string) (*Header, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := tar.NewReader(f)
	h, raw, err := readHeader(in, path)
	if err != nil {
		return nil, err
	}
	for _, part := range h.Files {
		if err := takePart(in, part, dir); err != nil {
			return nil, damaged(path, err)
		}
	}
	sum := sha256.Sum256(raw)
	entry, err := in.Next()
	if err != nil {
		return nil, damaged(path, err)
	}
	want, err := small(in)
	if err != nil || entry.Name != checksumName || strings.TrimSpace(string(want)) != hex.EncodeToString(sum[:]) {
		return nil, damaged(path, errors.Join(errors.New("the header is not what was written"), err))
	}
	return h, nil
}

func takePart(in *tar.Reader, want File, dir string) error {
	entry, err := in.Next()
	if err != nil {
		return err
	}
	if entry.Name != want.Name || entry.Size != want.Size || !filepath.IsLocal(want.Name) {
		return fmt.Errorf("there is %s in the place of %s", entry.Name, want.Name)
	}
	out, closeOut, err := create(dir, want.Name)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	if err := errors.Join(err, closeOut()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
		return fmt.Errorf("%s is not what was written", want.Name)
	}
	return nil
}

// create opens a new file below dir; without dir nothing is kept. The returned function puts it on stable storage.
func create(dir, name string) (io.Writer, func() error, error) {
	if dir == "" {
		return io.Discard, func() error { return nil }, nil
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return f, func() error {
		return errors.Join(f.Sync(), f.Close(), atomicfile.SyncDir(filepath.Dir(path)))
	}, nil
}
