package rbd

import (
	"bytes"
	"syscall"
	"unsafe"
)

// mostText bounds what is read of a text of librbd's.
const mostText = 1 << 16

// The lists of librbd are asked with room for some, and again with the room that it says they take
// (ERANGE).
const roomAtFirst = 16

func (l *Library) trash(io uintptr) ([]Trashed, syscall.Errno) {
	for room := uintptr(roomAtFirst); ; {
		entries, n := make([]trashEntry, room), room
		errno := errnoOf(l.trashList(io, &entries[0], &n))
		if errno == syscall.ERANGE && n > room {
			room = n
			continue
		}
		all := []Trashed{}
		if errno != 0 {
			return all, errno
		}
		for _, e := range entries[:n] {
			all = append(all, Trashed{ID: text(e.id), Name: text(e.name)})
		}
		l.trashFree(&entries[0], n)
		return all, 0
	}
}

func (l *Library) watchersOf(image uintptr) (any, syscall.Errno) {
	for room := uintptr(roomAtFirst); ; {
		entries, n := make([]watcherEntry, room), room
		errno := errnoOf(l.watchers(image, &entries[0], &n))
		if errno == syscall.ERANGE && n > room {
			room = n
			continue
		}
		all := []Watcher{}
		if errno != 0 {
			return all, errno
		}
		for _, e := range entries[:n] {
			all = append(all, Watcher{Address: text(e.address), ID: e.id, Cookie: e.cookie})
		}
		l.watchersFree(&entries[0], n)
		return all, 0
	}
}

func (l *Library) snapshotsOf(image uintptr) (any, syscall.Errno) {
	for room := int32(roomAtFirst); ; {
		entries, n := make([]snapshotEntry, room), room
		rc := l.snapshots(image, &entries[0], &n)
		if errnoOf(rc) == syscall.ERANGE && n > room {
			room = n
			continue
		}
		all := []Snapshot{}
		if errno := errnoOf(rc); errno != 0 {
			return all, errno
		}
		for _, e := range entries[:rc] {
			all = append(all, Snapshot{ID: e.id, Size: e.size, Name: text(e.name)})
		}
		if rc > 0 {
			l.snapshotsEnd(&entries[0])
		}
		return all, 0
	}
}

// metadata is nil where an image has no such key.
func (l *Library) metadata(image uintptr, key string) (*string, syscall.Errno) {
	for room := uintptr(256); ; {
		value, n := make([]byte, room), room
		errno := errnoOf(l.metaGet(image, key, &value[0], &n))
		switch {
		case errno == syscall.ERANGE && n > room:
			room = n
			continue
		case errno == syscall.ENOENT:
			return nil, 0
		case errno != 0:
			return nil, errno
		}
		value, _, _ = bytes.Cut(value, []byte{0})
		s := string(value)
		return &s, 0
	}
}

// text copies a text that ends with a zero byte.
func text(p *byte) string {
	if p == nil {
		return ""
	}
	for n, b := range unsafe.Slice(p, mostText) {
		if b == 0 {
			return string(unsafe.Slice(p, n))
		}
	}
	return string(unsafe.Slice(p, mostText))
}
