package rbd

import (
	"encoding/json"
	"fmt"
	"syscall"
)

const (
	// optionFeatures is RBD_IMAGE_OPTION_FEATURES.
	optionFeatures = 1
	// features are those that Ceph gives new images itself: layering (1), exclusive-lock (4),
	// object-map (8), fast-diff (16) and deep-flatten (32). Each client that can map images of Ceph
	// 16 knows them.
	features = 1 | 4 | 8 | 16 | 32
	// byUser is RBD_TRASH_IMAGE_SOURCE_USER.
	byUser = 0
)

// Do carries out a command for a cluster that librados is connected to by handle. The errno is
// positive, and zero on success.
func (l *Library) Do(handle uintptr, cmd []byte) (out []byte, status string, errno syscall.Errno) {
	var c command
	if err := json.Unmarshal(cmd, &c); err != nil {
		return nil, fmt.Sprintf("decoding the command: %v", err), syscall.EINVAL
	}
	var io uintptr
	if errno := errnoOf(l.poolOpen(handle, c.Pool, &io)); errno != 0 {
		return nil, fmt.Sprintf("there is no pool %d", c.Pool), errno
	}
	defer l.poolClose(io)
	answer, errno := l.inPool(io, c)
	if errno != 0 {
		return nil, "", errno
	}
	out, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Sprintf("encoding the answer: %v", err), syscall.EINVAL
	}
	return out, "", 0
}

// inPool does what needs no image that is open.
func (l *Library) inPool(io uintptr, c command) (any, syscall.Errno) {
	switch c.Prefix {
	case create:
		return nil, l.make(io, c)
	case remove:
		return nil, errnoOf(l.remove(io, c.Image))
	case moveToTrash:
		return nil, errnoOf(l.trashMove(io, c.Image, byUser, 0))
	case listTrash:
		return l.trash(io)
	case listContents:
		return l.contents(io)
	}
	open := l.openToAsk // it does not become a watcher
	if c.Prefix == resize || c.Prefix == setMetadata || c.Prefix == removeMetadata {
		open = l.open
	}
	var image uintptr
	if errno := errnoOf(open(io, c.Image, &image, nil)); errno != 0 {
		return nil, errno
	}
	defer l.close(image)
	return l.ofImage(image, c)
}

// ofImage does what an image that is open is asked.
func (l *Library) ofImage(image uintptr, c command) (any, syscall.Errno) {
	switch c.Prefix {
	case size:
		return l.sizeOf(image)
	case resize:
		return nil, errnoOf(l.resize(image, c.Size, false, l.progress, 0))
	case listWatchers:
		return l.watchersOf(image)
	case listSnapshots:
		return l.snapshotsOf(image)
	case getMetadata:
		return l.metadata(image, c.Key)
	case setMetadata:
		return nil, errnoOf(l.metaSet(image, c.Key, c.Value))
	case removeMetadata:
		return nil, errnoOf(l.metaRemove(image, c.Key))
	}
	return nil, syscall.EOPNOTSUPP
}

func (l *Library) make(io uintptr, c command) syscall.Errno {
	var options uintptr
	l.optionsCreate(&options)
	defer l.optionsDestroy(options)
	if errno := errnoOf(l.optionsSet(options, optionFeatures, features)); errno != 0 {
		return errno
	}
	return errnoOf(l.create(io, c.Image, c.Size, options))
}

func (l *Library) sizeOf(image uintptr) (any, syscall.Errno) {
	var bytes uint64
	errno := errnoOf(l.size(image, &bytes))
	return bytes, errno
}

func errnoOf(rc int32) syscall.Errno {
	if rc >= 0 {
		return 0
	}
	return syscall.Errno(-rc)
}
