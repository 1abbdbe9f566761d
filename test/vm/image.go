package vm

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
