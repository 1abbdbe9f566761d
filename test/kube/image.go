package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Images that nodes have.
const (
	// Image is Debian with the storage systems, and bin/holdfast as /usr/bin/holdfast.
	Image = "localhost/holdfast:dev"
	// BaseImage is the same without Holdfast.
	BaseImage = "localhost/holdfast-base:1"
)

// imagesDir is what hack/kube-image fills, in the module that the working directory belongs to.
func imagesDir() (string, error) {
	dir, err := moduleRoot()
	return filepath.Join(dir, ".cache/kube/images"), err
}

// checkImages fails the test unless the images are there, with the holdfast that was built last.
func checkImages(t hosts.T) {
	t.Helper()
	dir, err := imagesDir()
	if err != nil {
		t.Fatalf("kube: %v", err)
	}
	stamp, err := os.ReadFile(filepath.Join(dir, "holdfast.stamp"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("kube: there are no images in %s: run 'sudo hack/kube-image'", dir)
	}
	var have string
	if err == nil {
		have, err = sum(filepath.Join(dir, "base.stamp"), filepath.Join(dir, "../../../bin/holdfast"))
	}
	if err != nil {
		t.Fatalf("kube: while checking the images: %v", err)
	}
	if have != strings.TrimSpace(string(stamp)) {
		t.Fatalf("kube: the image of pods has another holdfast than bin: run 'sudo hack/kube-image'")
	}
}

// sum is the checksum of several files as one.
func sum(files ...string) (string, error) {
	hash := sha256.New()
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(hash, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// lockImages keeps the images from being changed.
func lockImages() (unlock func(), err error) {
	dir, err := imagesDir()
	if err != nil {
		return nil, err
	}
	lock, err := os.Open(filepath.Join(dir, "lock"))
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_SH)
	}
	if err != nil {
		return nil, fmt.Errorf("while locking the images: %w", err)
	}
	return func() { lock.Close() }, nil
}

// cloneImages makes a root of containerd that has the images. Their files are hard links:
// containerd and pods never write to them. Its databases are copies.
func cloneImages(target string) error {
	dir, err := imagesDir()
	if err != nil {
		return err
	}
	root := filepath.Join(dir, "root")
	if err := copyTree("--link", root, target); errors.Is(err, errLinks) {
		if err = copyTree("--reflink=auto", root, target); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	databases, err := filepath.Glob(filepath.Join(target, "*/*.db"))
	for _, path := range databases {
		text, e := os.ReadFile(path)
		if e == nil {
			e = errors.Join(os.Remove(path), os.WriteFile(path, text, 0o644))
		}
		err = errors.Join(err, e)
	}
	return err
}

// errLinks says that hard links cannot be had: the images lie on another file system.
var errLinks = errors.New("no hard links")

func copyTree(how, from, to string) error {
	out, err := exec.Command("cp", "-a", how, from, to).CombinedOutput() //nolint:noctx // it ends by itself
	if err == nil {
		return nil
	}
	if strings.Contains(string(out), unix.EXDEV.Error()) {
		err = errLinks
		_ = os.RemoveAll(to)
	}
	return fmt.Errorf("while copying images: %w: %.200s", err, out)
}
