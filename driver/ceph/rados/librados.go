package rados

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// libraryName is librados' soname; it has been the same since Ceph 0.48 and Holdfast uses only calls as old as that.
const libraryName = "librados.so.2"

type commandFunc func(h uintptr, cmd **byte, n uintptr, in *byte, inLen uintptr, out **byte, outLen *uintptr,
	status **byte, statusLen *uintptr) int32

// library holds the functions of librados. They block the calling thread.
type library struct {
	create     func(h *uintptr, cluster, entity string, flags uint64) int32
	confSet    func(h uintptr, option, value string) int32
	connect    func(h uintptr) int32
	shutdown   func(h uintptr)
	monCommand commandFunc
	mgrCommand commandFunc
	bufferFree func(b *byte)
}

// loadLibrary loads librados into this process. It runs in the child only.
func loadLibrary() (*library, error) {
	handle, err := purego.Dlopen(libraryName, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("loading %s, which the package librados2 brings: %w", libraryName, err)
	}
	lib := &library{}
	for name, f := range map[string]any{
		"rados_create2":     &lib.create,
		"rados_conf_set":    &lib.confSet,
		"rados_connect":     &lib.connect,
		"rados_shutdown":    &lib.shutdown,
		"rados_mon_command": &lib.monCommand,
		"rados_mgr_command": &lib.mgrCommand,
		"rados_buffer_free": &lib.bufferFree,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("loading %s: %w", libraryName, err)
		}
		purego.RegisterFunc(f, symbol)
	}
	return lib, nil
}

// command runs one command. The errno is positive, and zero on success.
func (l *library) command(f commandFunc, handle uintptr, cmd, input []byte) (out []byte, status string, errno syscall.Errno) {
	cmd = append(cmd[:len(cmd):len(cmd)], 0)
	text := &cmd[0]
	var in *byte
	if len(input) > 0 {
		in = &input[0]
	}
	// C sees the addresses of these bytes for the length of the call, the first through a pointer to a pointer.
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(text)
	pins.Pin(&text)
	if in != nil {
		pins.Pin(in)
	}
	var outPtr, statusPtr *byte
	var outLen, statusLen uintptr
	rc := f(handle, &text, 1, in, uintptr(len(input)), &outPtr, &outLen, &statusPtr, &statusLen)
	return l.take(outPtr, outLen), string(l.take(statusPtr, statusLen)), errnoOf(rc)
}

// take copies a buffer of librados and frees it.
func (l *library) take(p *byte, n uintptr) []byte {
	if p == nil {
		return nil
	}
	defer l.bufferFree(p)
	return append([]byte(nil), unsafe.Slice(p, n)...)
}

// errnoOf turns librados' negative return codes into errnos.
func errnoOf(rc int32) syscall.Errno {
	if rc >= 0 {
		return 0
	}
	return syscall.Errno(-rc)
}
