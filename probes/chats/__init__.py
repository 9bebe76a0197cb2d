"""What is asked: chats as clients send them, named, made of canaries, or generated."""
