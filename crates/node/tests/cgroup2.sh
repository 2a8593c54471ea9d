#!/bin/sh
# Runs tests of the process runtime in a virtual machine that has control groups of version 2 only,
# as root and as a user to whom a group was delegated: for machines that have version 1.
#
#   crates/node/tests/cgroup2.sh VMLINUZ [TEST…]
#
# VMLINUZ is any kernel with control groups and a serial console built in (Debian's
# linux-image-cloud-amd64, unpacked with `dpkg-deb -x`). Needs qemu-system-x86_64, a static busybox,
# cpio, setpriv. Without TEST those of limits are run. PROGRAM may name the built tests (target/debug/deps/process-…).
set -eu

kernel=$1
shift
tests=${*:-limits::}
cd "$(dirname "$0")/../../.."
if [ -z "${PROGRAM:-}" ]; then
    built=$(cargo test -p stint-node --test process --no-run 2>&1)
    PROGRAM=$(printf '%s\n' "$built" | sed -n 's/.*Executable tests.process.main.rs (\(.*\))/\1/p')
fi
program=$(realpath "$PROGRAM")
helper=$PWD/target/debug/stint-process-helper
test -x "$program" && test -x "$helper"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/etc" "$root/new"
cp "$(command -v busybox)" "$root/bin/busybox"
for file in "$program" "$helper" /usr/bin/setpriv; do
    for needed in "$file" $(ldd "$file" | grep -o '/[^ ]*'); do
        mkdir -p "$root$(dirname "$needed")"
        cp -L "$needed" "$root$needed"
    done
done
strip "$root$program" "$root$helper"
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n' > "$root/etc/passwd"

cat > "$root/init" <<END
#!/bin/busybox sh
/bin/busybox --install -s /bin
# A file system that can be left, as any machine's.
mount -t tmpfs none /new
cp -a /bin /etc /usr /lib* /work /home /root /tmp /new 2>/dev/null
for path in $(dirname "$program") $(dirname "$helper"); do mkdir -p /new\$path; cp -a \$path/. /new\$path; done
mkdir -p /new/proc /new/sys /new/dev /new/run
cp /second /new/second
exec switch_root /new /second
END
cat > "$root/second" <<END
#!/bin/busybox sh
export PATH=/usr/bin:/bin HOME=/tmp
chmod 755 / ; chmod 1777 /tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
uname -r
cat /sys/fs/cgroup/cgroup.controllers
ended() { echo "ended \$1: \$2, groups left: \$(find /sys/fs/cgroup -name 'stint-*' | wc -l)"; }
$program --test-threads=1 $tests
ended root \$?
mkdir -p /sys/fs/cgroup/delegated/app
echo '+cpu +memory' > /sys/fs/cgroup/cgroup.subtree_control
chown -R 65534:65534 /sys/fs/cgroup/delegated
echo \$\$ > /sys/fs/cgroup/delegated/app/cgroup.procs
/usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all $program --test-threads=1 $tests
ended user \$?
poweroff -f
END
chmod 755 "$root/init" "$root/second"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) > "$folder/initrd"

# A machine within a machine may have a /dev/kvm that does not work.
accelerator=${ACCELERATOR:-tcg}

timeout 900 qemu-system-x86_64 -M pc,accel=$accelerator -m 1536 -smp 2 -nographic -no-reboot -nic none \
    -kernel "$kernel" -initrd "$folder/initrd" -append 'console=ttyS0 quiet panic=-1' \
    < /dev/null | tee "$folder/said"
test "$(grep -c '^ended [a-z]*: 0, groups left: 0' "$folder/said")" = 2
