package rbd

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// libraryName is librbd's soname. It has been the same since Ceph 0.48.
const libraryName = "librbd.so.1"

// Library holds the functions of librbd, and those of librados that give it a pool. They block the
// calling thread.
type Library struct {
	poolOpen  func(cluster uintptr, pool int64, io *uintptr) int32
	poolClose func(io uintptr)

	optionsCreate  func(options *uintptr)
	optionsDestroy func(options uintptr)
	optionsSet     func(options uintptr, option int32, value uint64) int32

	create    func(io uintptr, name string, size uint64, options uintptr) int32
	remove    func(io uintptr, name string) int32
	trashMove func(io uintptr, name string, source int32, delay uint64) int32
	trashList func(io uintptr, entries *trashEntry, n *uintptr) int32
	trashFree func(entries *trashEntry, n uintptr)

	list     func(io uintptr, entries *imageEntry, n *uintptr) int32
	listFree func(entries *imageEntry, n uintptr)

	open      func(io uintptr, name string, image *uintptr, snapshot *byte) int32
	openToAsk func(io uintptr, name string, image *uintptr, snapshot *byte) int32
	close     func(image uintptr) int32

	size         func(image uintptr, size *uint64) int32
	resize       func(image uintptr, size uint64, mayShrink bool, progress, data uintptr) int32
	progress     uintptr // a C function that resize calls again and again
	watchers     func(image uintptr, watchers *watcherEntry, n *uintptr) int32
	watchersFree func(watchers *watcherEntry, n uintptr)
	snapshots    func(image uintptr, snapshots *snapshotEntry, n *int32) int32
	snapshotsEnd func(snapshots *snapshotEntry)
	metaGet      func(image uintptr, key string, value *byte, n *uintptr) int32
	metaSet      func(image uintptr, key, value string) int32
	metaRemove   func(image uintptr, key string) int32
}

// The structures of librbd.h, on machines of 64 bits.
type (
	trashEntry struct {
		id, name *byte
		_        int32    // what moved it there
		_        [2]int64 // since when, and how long it is kept
	}
	imageEntry   struct{ _, name *byte }
	watcherEntry struct {
		address *byte
		id      int64
		cookie  uint64
	}
	snapshotEntry struct {
		id, size uint64
		name     *byte
	}
)

// Load loads librbd into this process, which has loaded librados already.
func Load() (*Library, error) {
	handle, err := purego.Dlopen(libraryName, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("loading %s, which the package librbd1 brings: %w", libraryName, err)
	}
	lib := &Library{progress: purego.NewCallback(func(_, _ uint64, _ uintptr) uintptr { return 0 })}
	for name, f := range lib.functions() {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("loading %s: %w", libraryName, err)
		}
		purego.RegisterFunc(f, symbol)
	}
	return lib, nil
}

func (l *Library) functions() map[string]any {
	return map[string]any{
		"rados_ioctx_create2":       &l.poolOpen, // the linker finds it in librados, which librbd needs
		"rados_ioctx_destroy":       &l.poolClose,
		"rbd_image_options_create":  &l.optionsCreate,
		"rbd_image_options_destroy": &l.optionsDestroy,

		"rbd_image_options_set_uint64": &l.optionsSet,

		"rbd_create4":                 &l.create,
		"rbd_remove":                  &l.remove,
		"rbd_trash_move":              &l.trashMove,
		"rbd_trash_list":              &l.trashList,
		"rbd_trash_list_cleanup":      &l.trashFree,
		"rbd_list2":                   &l.list,
		"rbd_open":                    &l.open,
		"rbd_open_read_only":          &l.openToAsk,
		"rbd_close":                   &l.close,
		"rbd_get_size":                &l.size,
		"rbd_resize2":                 &l.resize,
		"rbd_watchers_list":           &l.watchers,
		"rbd_watchers_list_cleanup":   &l.watchersFree,
		"rbd_snap_list":               &l.snapshots,
		"rbd_snap_list_end":           &l.snapshotsEnd,
		"rbd_image_spec_list_cleanup": &l.listFree,

		"rbd_metadata_get":    &l.metaGet,
		"rbd_metadata_set":    &l.metaSet,
		"rbd_metadata_remove": &l.metaRemove,
	}
}
