package vm

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed init.sh
var initScript []byte

// network are the modules without which the machine reaches nobody.
var network = []string{"virtio_pci", "virtio_net", "virtio_rng"}

// makeImage writes the root file system of a machine to the file initrd in a new directory.
func makeImage(ctx context.Context, dir, address string, o Options) error {
	root := filepath.Join(dir, "root")
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o700); err != nil {
		return fmt.Errorf("while making a directory for the machine: %w", err)
	}
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return fmt.Errorf("while reading the programs of the machine (is busybox-static installed?): %w", err)
	}
	modules, err := modulesOf(ctx, o.Kernel, slices.Concat(network, o.Modules))
	if err != nil {
		return err
	}
	files := map[string][]byte{"bin/busybox": busybox, "init": initScript, "script": []byte(o.Script), "address": []byte(address)}
	for i, path := range modules {
		name := fmt.Sprintf("module%d.ko", i)
		if files[name], err = os.ReadFile(path); err != nil {
			return fmt.Errorf("while reading a module: %w", err)
		}
		files["modules"] = fmt.Appendf(files["modules"], "/%s\n", name)
	}
	for name, data := range o.Files {
		files[name] = data
	}
	for name, data := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			return fmt.Errorf("while making a directory of the machine: %w", err)
		}
		if err := os.WriteFile(filepath.Join(root, name), data, 0o700); err != nil {
			return fmt.Errorf("while writing a file of the machine: %w", err)
		}
	}
	pack := exec.CommandContext(ctx, "sh", "-c", "find . | cpio --quiet -o -H newc >../initrd")
	pack.Dir = root
	if out, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("while packing the root of the machine: %w: %s", err, out)
	}
	return nil
}

// makeDisks makes disks of some sizes, and returns what QEMU is told of them.
func makeDisks(dir string, sizes []int64) (args []string, err error) {
	for n, size := range sizes {
		name := diskFile(dir, n)
		f, err := os.Create(name)
		if err == nil {
			err = errors.Join(f.Truncate(size), f.Close())
		}
		if err != nil {
			return nil, fmt.Errorf("while making a disk of the machine: %w", err)
		}
		args = append(args, "-drive", fmt.Sprintf("if=none,id=disk%d,format=raw,file=%s", n, name),
			"-device", fmt.Sprintf("virtio-blk-pci,drive=disk%d,serial=disk%d", n, n))
	}
	return args, nil
}

func diskFile(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("disk%d", number))
}

// Programs are files for a machine: programs of this one, with the libraries that they need. What is named by its path, as a library that a program
// opens when it runs, is there under this path, the others below /bin.
func Programs(ctx context.Context, names ...string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range names {
		path, place := name, name
		if !filepath.IsAbs(name) {
			var err error
			if path, err = exec.LookPath(name); err != nil {
				return nil, err
			}
			place = "bin/" + name
		}
		out, err := exec.CommandContext(ctx, "ldd", path).Output()
		if err != nil {
			return nil, fmt.Errorf("while looking which libraries %s needs: %w", name, err)
		}
		for _, need := range library.FindAllString(string(out), -1) {
			if err := add(files, need, need); err != nil {
				return nil, err
			}
		}
		if err := add(files, place, path); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// add reads a file, unless it was read.
func add(files map[string][]byte, place, path string) (err error) {
	place = strings.TrimPrefix(place, "/")
	if files[place] == nil {
		files[place], err = os.ReadFile(path)
	}
	return err
}

// library is a path in what ldd says.
var library = regexp.MustCompile(`/\S+\.so\S*`)

// modulesOf are the files of modules and of those that they need, in the order in which they are loaded.
func modulesOf(ctx context.Context, kernel string, names []string) (files []string, err error) {
	versions, err := os.ReadDir(filepath.Join(kernel, "lib/modules"))
	if err != nil || len(versions) != 1 {
		return nil, fmt.Errorf("there is no kernel in %s: run 'hack/vm-kernel' (%w)", kernel, err)
	}
	for _, name := range names {
		out, err := exec.CommandContext(ctx, "modprobe", "--show-depends", "-d", kernel, "-S", versions[0].Name(), name).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("while looking for the module %s: %w: %s", name, err, out)
		}
		for line := range strings.Lines(string(out)) {
			what, path, _ := strings.Cut(strings.TrimSpace(line), " ")
			if what == "insmod" && !slices.Contains(files, path) {
				files = append(files, path)
			}
		}
	}
	return files, nil
}
