package rados

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// grace is how much longer than a call's own time a child may take to answer before it is held for hung and killed. A child
// answers every request in time, also when Ceph does not.
const grace = 2 * time.Second

// process is one run of a child.
type process struct {
	in     *os.File
	child  *os.Process
	stderr tail
	done   chan struct{} // closed when the child has ended and been reaped

	writing sync.Mutex // guards writes to in

	mu      sync.Mutex
	pending map[uint64]*pending
	next    uint64
	killed  string // why we killed it, or empty
	spoke   bool   // it has answered once
}

type pending struct {
	answer chan *response // has room for one
	hung   *time.Timer
}

// startProcess starts a child for cfg. The binary is taken from /proc/self/exe: the file on disk may be another release by
// now, which may speak another protocol.
func startProcess(cfg Config) (*process, error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, inR.Close(), inW.Close())
	}
	p := &process{in: inW, done: make(chan struct{}), pending: map[uint64]*pending{}}
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // the child ends when its pipe is closed
	cmd.Args = []string{childName}
	cmd.Env = childEnv()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, &p.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	started := make(chan error)
	go p.supervise(cmd, outR, started)
	err = <-started
	// The child has its own ends now.
	closeErr := errors.Join(inR.Close(), outW.Close())
	if err = errors.Join(err, closeErr); err != nil {
		return nil, fmt.Errorf("starting the child for librados: %w", err)
	}
	if err := p.write(cfg, grace); err != nil {
		p.kill("it did not take its configuration")
		return nil, err
	}
	return p, nil
}

// childEnv keeps what the dynamic linker and the Go runtime look at. Ceph's own variables (CEPH_ARGS, CEPH_CONF) are left out
// on purpose.
func childEnv() []string {
	var env []string
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "GORACE", "GOCOVERDIR", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// supervise starts the child, reads its answers, and reaps it. The kernel sends the parent-death signal when the thread that
// started the child ends, not the process, so the goroutine keeps its thread until the child is gone.
func (p *process) supervise(cmd *exec.Cmd, out *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if err == nil {
		p.child = cmd.Process
	}
	started <- err
	if err != nil {
		_ = out.Close()
		_ = p.in.Close()
		return
	}
	readers := make(chan struct{})
	go func() {
		defer close(readers)
		p.read(out)
	}()
	_ = cmd.Wait() // how it ended is told by its last words, see reason
	<-readers
	_ = out.Close()
	_ = p.in.Close()
	p.mu.Lock()
	for id, w := range p.pending {
		w.hung.Stop()
		delete(p.pending, id)
	}
	p.mu.Unlock()
	close(p.done)
}

// read hands out answers until the child closes its end.
func (p *process) read(out *os.File) {
	r := bufio.NewReader(out)
	for {
		a := &response{}
		if err := readFrame(r, a); err != nil {
			// Either the child has ended, or it speaks nonsense and has to.
			p.kill("")
			return
		}
		p.mu.Lock()
		p.spoke = true
		if w := p.pending[a.ID]; w != nil {
			w.hung.Stop()
			delete(p.pending, a.ID)
			w.answer <- a
		}
		p.mu.Unlock()
	}
}

// call sends a request and waits for its answer, until ctx or the child ends.
func (p *process) call(ctx context.Context, r request) (*response, error) {
	limit := time.Duration(r.Millis)*time.Millisecond + grace
	w := &pending{answer: make(chan *response, 1)}
	p.mu.Lock()
	p.next++
	r.ID = p.next
	w.hung = time.AfterFunc(limit, func() { p.kill("it did not answer") })
	p.pending[r.ID] = w
	p.mu.Unlock()
	if p.ended() { // nobody would stop the timer
		w.hung.Stop()
	}
	if err := p.write(r, limit); err != nil {
		p.kill("it did not take a request")
	}
	select {
	case a := <-w.answer:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, errors.New(p.reason())
	}
}

// write sends one frame. A hung child does not empty its pipe, hence the limit.
func (p *process) write(v any, limit time.Duration) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := p.in.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return fmt.Errorf("writing to the child for librados: %w", err)
	}
	return writeFrame(p.in, v)
}

// kill ends the child now. It is harmless when the child has ended.
func (p *process) kill(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended() {
		return
	}
	if p.killed == "" {
		p.killed = why
	}
	_ = p.child.Kill() // fails only for a child that has ended
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// reason says why the child ended.
func (p *process) reason() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed != "" {
		return "the child for librados was killed: " + p.killed
	}
	if words := strings.TrimSpace(p.stderr.String()); words != "" {
		return "the child for librados ended: " + words
	}
	return "the child for librados ended"
}

// close asks the child to end by closing its pipe, and kills it when it does not.
func (p *process) close() {
	_ = p.in.Close()
	select {
	case <-p.done:
	case <-time.After(grace):
		p.kill("it did not end")
		<-p.done
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// tailSize is enough for a last sentence.
const tailSize = 1024

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if n := len(t.buf) - tailSize; n > 0 {
		t.buf = append([]byte(nil), t.buf[n:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
