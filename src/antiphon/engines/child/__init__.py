"""An engine in a process of its own, behind the port.

::

    engine.py     the port, on the side of the server
    life.py       what one process is told, what it says, how it ends
    link.py       its end of the socket, read and written by the event loop
    process.py    the process: spawned, ended, reaped
    loading.py    whether a load still works
    pulse.py      whether the engine still turns
    main.py       the other side: commands in, frames out, around an engine's loop
    commands.py   its commands, and the answer to a ping
    sender.py     its frames
"""
